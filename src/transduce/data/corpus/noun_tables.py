"""The nouns by kind. One English word has exactly one German one.

Each kind gives the adjectives that suit it, and its nouns, apart by semicolons:
``english[/plural] [+adjective ...] = article nominative genitive plural``. Substances have no plural. Regular
English plurals are left to the rule; an adjective with a plus suits one noun beside those of its kind.
"""

from __future__ import annotations

TABLES: dict[str, tuple[str, str]] = {
    "person": (
        "old young tall small strong friendly tired ill happy sad rich poor famous clever hungry polite",
        """
        man/men = der Mann Mannes Männer; woman/women = die Frau Frau Frauen;
        boy = der Junge Jungen Jungen; girl = das Mädchen Mädchens Mädchen;
        child/children = das Kind Kindes Kinder; friend = der Freund Freundes Freunde;
        neighbour = der Nachbar Nachbarn Nachbarn; teacher = der Lehrer Lehrers Lehrer;
        pupil = der Schüler Schülers Schüler; student = der Student Studenten Studenten;
        doctor = der Arzt Arztes Ärzte; nurse = die Krankenschwester Krankenschwester Krankenschwestern;
        baker = der Bäcker Bäckers Bäcker; cook = der Koch Kochs Köche;
        farmer = der Bauer Bauern Bauern; policeman/policemen = der Polizist Polizisten Polizisten;
        waiter = der Kellner Kellners Kellner; painter = der Maler Malers Maler;
        singer = der Sänger Sängers Sänger; dancer = die Tänzerin Tänzerin Tänzerinnen;
        king = der König Königs Könige; queen = die Königin Königin Königinnen;
        guest = der Gast Gastes Gäste; customer = der Kunde Kunden Kunden;
        colleague = der Kollege Kollegen Kollegen; boss = der Chef Chefs Chefs;
        tourist = der Tourist Touristen Touristen; judge = der Richter Richters Richter;
        lawyer = der Anwalt Anwalts Anwälte; gardener = der Gärtner Gärtners Gärtner;
        lady = die Dame Dame Damen; saleswoman/saleswomen = die Verkäuferin Verkäuferin Verkäuferinnen;
        engineer = der Ingenieur Ingenieurs Ingenieure;
        writer = der Schriftsteller Schriftstellers Schriftsteller
        """,
    ),
    "parent": (
        "old tall small strong friendly tired ill happy sad rich poor clever hungry brave",
        """
        father = der Vater Vaters Väter; mother = die Mutter Mutter Mütter;
        uncle = der Onkel Onkels Onkel; aunt = die Tante Tante Tanten;
        grandfather = der Großvater Großvaters Großväter;
        grandmother = die Großmutter Großmutter Großmütter
        """,
    ),
    "sibling": (
        "old young tall small strong friendly tired ill happy sad rich poor clever hungry brave",
        """
        brother = der Bruder Bruders Brüder; sister = die Schwester Schwester Schwestern;
        son = der Sohn Sohnes Söhne; daughter = die Tochter Tochter Töchter
        """,
    ),
    "animal": (
        "old young big small hungry black white brown wild tired dangerous",
        """
        dog = der Hund Hundes Hunde; cat = die Katze Katze Katzen; horse = das Pferd Pferdes Pferde;
        bird = der Vogel Vogels Vögel; cow = die Kuh Kuh Kühe; mouse/mice = die Maus Maus Mäuse;
        pig = das Schwein Schweins Schweine; bear = der Bär Bären Bären; duck = die Ente Ente Enten;
        rabbit = das Kaninchen Kaninchens Kaninchen
        """,
    ),
    "food": (
        "fresh cold warm big small good cheap expensive",
        """
        apple = der Apfel Apfels Äpfel; pear = die Birne Birne Birnen; egg = das Ei Eies Eier;
        cake = der Kuchen Kuchens Kuchen; tomato/tomatoes = die Tomate Tomate Tomaten;
        potato/potatoes = die Kartoffel Kartoffel Kartoffeln; banana = die Banane Banane Bananen;
        orange = die Orange Orange Orangen; sausage = die Wurst Wurst Würste;
        roll = das Brötchen Brötchens Brötchen
        """,
    ),
    "dish": (
        "fresh cold warm good cheap expensive",
        """
        bread = das Brot Brotes; cheese = der Käse Käses; meat = das Fleisch Fleisches;
        soup = die Suppe Suppe; rice = der Reis Reises; chocolate = die Schokolade Schokolade;
        fruit = das Obst Obstes
        """,
    ),
    "drink": (
        "fresh cold warm hot good cheap expensive",
        """
        coffee = der Kaffee Kaffees; tea = der Tee Tees; milk = die Milch Milch;
        water = das Wasser Wassers; juice = der Saft Saftes; wine = der Wein Weines;
        lemonade = die Limonade Limonade
        """,
    ),
    "reading": (
        "long short interesting boring important new old funny",
        """
        book = das Buch Buches Bücher; letter = der Brief Briefes Briefe;
        newspaper = die Zeitung Zeitung Zeitungen; novel = der Roman Romans Romane;
        story = die Geschichte Geschichte Geschichten; poem = das Gedicht Gedichtes Gedichte;
        message = die Nachricht Nachricht Nachrichten; report = der Bericht Berichtes Berichte;
        diary = das Tagebuch Tagebuches Tagebücher
        """,
    ),
    "thing": (
        "new old big small beautiful expensive cheap heavy red blue green black white dirty clean",
        """
        bag = die Tasche Tasche Taschen; suitcase = der Koffer Koffers Koffer;
        key = der Schlüssel Schlüssels Schlüssel; umbrella = der Regenschirm Regenschirms Regenschirme;
        clock = die Uhr Uhr Uhren; lamp = die Lampe Lampe Lampen;
        telephone = das Telefon Telefons Telefone; computer = der Computer Computers Computer;
        camera = die Kamera Kamera Kameras; picture = das Bild Bildes Bilder;
        ball = der Ball Balles Bälle; doll = die Puppe Puppe Puppen; glass = das Glas Glases Gläser;
        cup = die Tasse Tasse Tassen; plate = der Teller Tellers Teller;
        knife/knives = das Messer Messers Messer; fork = die Gabel Gabel Gabeln;
        spoon = der Löffel Löffels Löffel; bottle = die Flasche Flasche Flaschen;
        basket = der Korb Korbes Körbe; flower = die Blume Blume Blumen;
        present = das Geschenk Geschenks Geschenke; map = die Karte Karte Karten;
        pencil = der Bleistift Bleistifts Bleistifte; guitar = die Gitarre Gitarre Gitarren;
        box = die Kiste Kiste Kisten
        """,
    ),
    "clothes": (
        "new old warm beautiful expensive cheap red blue green black white dirty clean elegant",
        """
        coat = der Mantel Mantels Mäntel; shirt = das Hemd Hemdes Hemden;
        dress = das Kleid Kleides Kleider; skirt = der Rock Rockes Röcke; hat = der Hut Hutes Hüte;
        jacket = die Jacke Jacke Jacken; scarf/scarves = der Schal Schals Schals;
        shoe = der Schuh Schuhs Schuhe; cap = die Mütze Mütze Mützen;
        glove = der Handschuh Handschuhs Handschuhe
        """,
    ),
    "furniture": (
        "new old big small beautiful expensive cheap heavy black white round",
        """
        table = der Tisch Tisches Tische; chair = der Stuhl Stuhls Stühle; bed = das Bett Bettes Betten;
        sofa = das Sofa Sofas Sofas; cupboard = der Schrank Schrankes Schränke;
        shelf/shelves = das Regal Regals Regale; mirror = der Spiegel Spiegels Spiegel
        """,
    ),
    "opening": (
        "new old big small heavy red blue green white dirty clean",
        """
        door = die Tür Tür Türen; window = das Fenster Fensters Fenster
        """,
    ),
    "vehicle": (
        "new old big small beautiful expensive cheap red blue green black white modern",
        """
        car = das Auto Autos Autos; bus = der Bus Busses Busse; train = der Zug Zuges Züge;
        bicycle = das Fahrrad Fahrrads Fahrräder; ship = das Schiff Schiffes Schiffe;
        boat = das Boot Bootes Boote; aeroplane = das Flugzeug Flugzeugs Flugzeuge;
        tram = die Straßenbahn Straßenbahn Straßenbahnen
        """,
    ),
    "room": (
        "big small old new beautiful quiet modern clean warm dark",
        """
        kitchen = die Küche Küche Küchen; office = das Büro Büros Büros;
        room = das Zimmer Zimmers Zimmer; bathroom = das Badezimmer Badezimmers Badezimmer;
        cellar = der Keller Kellers Keller; flat = die Wohnung Wohnung Wohnungen
        """,
    ),
    "building": (
        "big small old new beautiful quiet modern famous",
        """
        house = das Haus Hauses Häuser; school = die Schule Schule Schulen;
        hotel = das Hotel Hotels Hotels; restaurant = das Restaurant Restaurants Restaurants;
        library = die Bibliothek Bibliothek Bibliotheken; museum = das Museum Museums Museen;
        hospital = das Krankenhaus Krankenhauses Krankenhäuser; church = die Kirche Kirche Kirchen;
        theatre = das Theater Theaters Theater; cinema = das Kino Kinos Kinos;
        shop = der Laden Ladens Läden; station = der Bahnhof Bahnhofs Bahnhöfe;
        airport = der Flughafen Flughafens Flughäfen;
        university = die Universität Universität Universitäten;
        castle = das Schloss Schlosses Schlösser; tower +high = der Turm Turmes Türme;
        factory = die Fabrik Fabrik Fabriken; bridge +long +high = die Brücke Brücke Brücken
        """,
    ),
    "place": (
        "big small old beautiful quiet famous",
        """
        garden = der Garten Gartens Gärten; park = der Park Parks Parks;
        forest = der Wald Waldes Wälder; city = die Stadt Stadt Städte;
        village = das Dorf Dorfes Dörfer; street +long = die Straße Straße Straßen;
        market = der Markt Marktes Märkte; beach = der Strand Strandes Strände;
        lake = der See Sees Seen; river +long = der Fluss Flusses Flüsse;
        island = die Insel Insel Inseln; mountain +high = der Berg Berges Berge
        """,
    ),
    "event": (
        "long short interesting boring important new",
        """
        film = der Film Films Filme; party = die Party Party Partys; game = das Spiel Spiels Spiele;
        concert = das Konzert Konzerts Konzerte;
        lesson = die Unterrichtsstunde Unterrichtsstunde Unterrichtsstunden;
        journey = die Reise Reise Reisen; holiday = der Urlaub Urlaubs Urlaube
        """,
    ),
    "thought": (
        "important interesting difficult easy good bad new old",
        """
        question = die Frage Frage Fragen; answer = die Antwort Antwort Antworten;
        problem = das Problem Problems Probleme; idea = die Idee Idee Ideen;
        plan = der Plan Plans Pläne; word = das Wort Wortes Wörter; song = das Lied Liedes Lieder;
        mistake = der Fehler Fehlers Fehler
        """,
    ),
}
